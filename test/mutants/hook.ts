import { registerHooks } from "node:module";
import { mutants } from "./mutants.ts";

// Loaded before everything else in a process that runs with one line broken: BERTH_MUTANT names it.

const mutant = mutants.find(({ name }) => name === process.env["BERTH_MUTANT"]);
if (mutant === undefined) throw new Error(`no mutant ${process.env["BERTH_MUTANT"]}`);

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    if (!url.endsWith(`/${mutant.file}`)) return loaded;
    const source = textOf(loaded.source);
    if (source.split(mutant.find).length !== 2) {
      throw new Error(`${mutant.file} does not have the line of "${mutant.name}" once`);
    }
    return { ...loaded, source: source.replace(mutant.find, () => mutant.replace) };
  },
});

function textOf(source: unknown): string {
  if (typeof source === "string") return source;
  return source instanceof Uint8Array ? new TextDecoder().decode(source) : "";
}
