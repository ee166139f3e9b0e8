import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { demandSound, unheard } from "./laws-sound.ts";
import { Violation } from "./violation.ts";

describe("the law that no part falls over", () => {
  it("is broken by a line of a log that tells of a mistake in the code", () => {
    const errors = [
      new TypeError("undefined is not a function"),
      new ReferenceError("config is not defined"),
      new RangeError("Invalid array length"),
      new assert.AssertionError({ message: "no" }),
      new Error("assertion failed: a Claim has an owner"),
    ];
    for (const error of errors) {
      const line = `a run failed ${JSON.stringify({ key: "web", error: String(error) })}`;
      assert.throws(
        () => demandSound(line),
        /law sound, .* a log says: a run failed/,
        String(error),
      );
    }
  });

  it("leaves alone what the world does to Berth", () => {
    demandSound('a run failed {"error":"NetworkError: the connection ended"}');
    demandSound('has failed {"cause":"SyntaxError: the reply breaks off"}');
    demandSound('stalls {"category":"ConfigurationError"}');
  });

  it("is broken by what nobody catches, and says what it was", () => {
    const violation = unheard(new Error("boom"));
    assert.ok(violation instanceof Violation);
    assert.match(violation.message, /nobody caught this: Error: boom/);
  });
});
