import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A test that is run alone leaves the others out.
    allowOnly: false,
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          // As below: only a hang takes this long, also on a machine that is busy.
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          // Only a hang takes this long: each test waits for the event itself.
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
