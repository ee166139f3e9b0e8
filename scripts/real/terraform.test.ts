import assert from "node:assert/strict";
import { test } from "node:test";
import { requiringModule } from "./terraform.ts";

test("a module is required with its Go and with what it replaces by something published", () => {
  const published = `module example.org/tool

go 1.26.6

require example.org/part v1.0.0

replace example.org/part v1.0.0 => example.org/fork v1.0.1

replace (
	example.org/other => example.org/other-fork v2.0.0
	example.org/near => ./near
)
`;
  assert.equal(
    requiringModule(published, "example.org/tool", "3.2.1"),
    `module berth.dev/clients
go 1.26.6
require example.org/tool v3.2.1
replace example.org/part v1.0.0 => example.org/fork v1.0.1
replace example.org/other => example.org/other-fork v2.0.0
`,
  );
});
