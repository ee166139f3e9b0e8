import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Command, CommandError, exitCodes, type Terminal } from "./command.ts";
import { commands } from "./commands/index.ts";
import { explain, overview } from "./help.ts";
import { runCommandLine } from "./main.ts";
import { parseCall } from "./parse.ts";

const sample: Command = {
  name: "sample",
  summary: "show how it is done",
  description: "First paragraph.\n\nSecond paragraph.",
  usage: "sample FILE [--data DIR]",
  options: {
    data: { type: "string", value: "DIR", default: ".berth", description: "the data folder" },
    name: { type: "strings", short: "n", description: "may be repeated" },
    force: { type: "boolean", description: "do it all the same" },
  },
  arguments: ["FILE", "OTHER?"],
  examples: ["berth sample a"],
  run: async () => exitCodes.ok,
};

function createRecorder(): { terminal: Terminal; printed: string[]; noted: string[] } {
  const printed: string[] = [];
  const noted: string[] = [];
  const terminal: Terminal = {
    print: (line) => void printed.push(line),
    note: (line) => void noted.push(line),
    interrupted: new Promise(() => {}),
    directory: "/somewhere",
  };
  return { terminal, printed, noted };
}

describe("the arguments of a command", () => {
  const parse = (...args: string[]): ReturnType<typeof parseCall> => {
    return parseCall(sample, args, createRecorder().terminal);
  };

  test("are read by name, with defaults where they are not given", () => {
    const call = parse("a", "-n", "x", "--name", "y", "--force");
    assert.deepEqual(call.arguments, ["a"]);
    assert.equal(call.string("data"), ".berth");
    assert.deepEqual(call.strings("name"), ["x", "y"]);
    assert.equal(call.flag("force"), true);
    assert.equal(parse("a").flag("force"), false);
    assert.deepEqual(parse("a").strings("name"), []);
  });

  const refusals: Record<string, { args: string[]; says: RegExp }> = {
    "an option that there is not": {
      args: ["a", "--colour"],
      says: /--colour.*Usage: berth sample/,
    },
    "an option without its value": { args: ["a", "--data"], says: /--data.*Usage/ },
    "a missing argument": { args: [], says: /^FILE is missing/ },
    "one argument too many": { args: ["a", "b", "c"], says: /unexpected argument "c"/ },
  };
  for (const [what, { args, says }] of Object.entries(refusals)) {
    test(`refuse ${what} as a wrong command line`, () => {
      assert.throws(
        () => parse(...args),
        (error: unknown) => {
          assert.ok(error instanceof CommandError);
          assert.equal(error.exitCode, exitCodes.usage);
          assert.match(error.message, says);
          return true;
        },
      );
    });
  }
});

describe("the command line", () => {
  test("shows what there is when nothing is asked", async () => {
    const { terminal, printed } = createRecorder();
    assert.equal(await runCommandLine([], terminal), exitCodes.ok);
    assert.equal(printed.join("\n"), overview(commands));
  });

  test("names the commands to whoever asks for another", async () => {
    const { terminal, noted } = createRecorder();
    assert.equal(await runCommandLine(["upp"], terminal), exitCodes.usage);
    assert.match(noted.join("\n"), /there is no command "upp"\. There are: up, /);
  });

  test("explains every command within 88 columns, with its options and an example", () => {
    for (const command of commands) {
      const lines = explain(command).split("\n");
      assert.equal(lines[0], `Usage: berth ${command.usage}`);
      for (const name of Object.keys(command.options)) {
        assert.ok(
          lines.some((line) => line.includes(`--${name}`)),
          `${command.name} --${name}`,
        );
      }
      for (const line of lines.slice(1)) assert.ok(line.length <= 90, line);
      assert.ok(command.examples.length > 0, command.name);
    }
  });

  test("wraps paragraphs and keeps them apart", () => {
    assert.match(explain(sample), /First paragraph\.\n\nSecond paragraph\./);
    assert.match(explain(sample), /--data DIR {2,}the data folder \(default \.berth\)/);
  });
});
