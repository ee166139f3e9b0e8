import { type Command, exitCodes } from "../../src/cli/command.ts";
import { explain, visible } from "../../src/cli/help.ts";

/** docs/cli.md: every command as its own help explains it. */
export function cliPage(commands: readonly Command[]): string {
  const shown = visible(commands);
  const rows = shown.map(
    ({ name, summary }) => `| [\`berth ${name}\`](#berth-${name}) | ${summary} |`,
  );
  return [
    "# The command line",
    "",
    "Made by `scripts/generate.ts` from the commands themselves; do not edit it.",
    "",
    "| Command | does |",
    "| --- | --- |",
    ...rows,
    "",
    ...common,
    ...shown.flatMap((command) => section(command)),
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}

const { ok, failed, usage } = exitCodes;

const common = [
  "## Common to all",
  "",
  "- **The server** is found by `--kubeconfig FILE`, else by the kubeconfig in `--data DIR`, else in",
  "  `./.berth`, else by `$KUBECONFIG` (the first file that is there) or `~/.kube/config`.",
  "- **Output** is a table for people and `-o json|yaml|name|jsonpath=…` for programs. Colours are for a",
  "  terminal only, and off with `NO_COLOR`. Results go to standard output, all else to standard error.",
  `- **Exit codes**: ${ok} done, ${failed} failed or refused, ${usage} the command line is wrong.`,
  "- **kubectl** may be used beside it: `apply` shares its `last-applied-configuration` annotation. Lists",
  "  are replaced as a whole, as kubectl does with kinds that it does not know.",
  "",
];

function section(command: Command): string[] {
  return [`## berth ${command.name}`, "", "```text", explain(command), "```", ""];
}
