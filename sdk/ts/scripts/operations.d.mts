/** The file of types for an OpenAPI document. */
export function operationsOf(document: unknown): string;
