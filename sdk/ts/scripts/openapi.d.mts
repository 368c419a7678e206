/** The OpenAPI document of the built server. */
export function documentOf(): Promise<unknown>;
