import { registerHooks } from "node:module";
import { falls, mutants } from "./mutants.ts";

// Loaded before everything else in a process that runs with one line broken: BERTH_MUTANT names it.

const mutant = [...mutants, ...falls].find(({ name }) => name === process.env["BERTH_MUTANT"]);
if (mutant === undefined) throw new Error(`no mutant ${process.env["BERTH_MUTANT"]}`);

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    const edits = mutant.edits.filter(({ file }) => url.endsWith(`/${file}`));
    if (edits.length === 0) return loaded;
    let source = textOf(loaded.source);
    for (const { file, find, replace } of edits) {
      if (source.split(find).length !== 2) {
        throw new Error(`${file} does not have the line of "${mutant.name}" once`);
      }
      source = source.replace(find, () => replace);
    }
    return { ...loaded, source };
  },
});

function textOf(source: unknown): string {
  if (typeof source === "string") return source;
  return source instanceof Uint8Array ? new TextDecoder().decode(source) : "";
}
