/** Where in the state something changed: names of members, and places in lists. */
export type Path = readonly (string | number)[];

/** One change of plain data, as it is written down. */
export type Change =
  | { readonly at: Path; readonly set: unknown }
  | { readonly at: Path; readonly remove: true }
  /** A list: so many items are cut out at a place, and others put there. */
  | {
      readonly at: Path;
      readonly cut: readonly [number, number];
      readonly put: readonly unknown[];
    };

/** Makes the change. The data must be what it was when the change was noted down. */
export function applyChange(root: object, change: Change): void {
  const { at } = change;
  if ("cut" in change) {
    const list = memberAt(root, at);
    if (!Array.isArray(list)) throw new Error(`there is no list at ${at.join("/")}`);
    list.splice(...change.cut, ...change.put);
    return;
  }
  const parent = memberAt(root, at.slice(0, -1));
  const name = at.at(-1);
  if (typeof parent !== "object" || parent === null || name === undefined) {
    throw new Error(`there is nothing at ${at.join("/")}`);
  }
  if ("remove" in change) Reflect.deleteProperty(parent, name);
  else Reflect.set(parent, name, change.set);
}

function memberAt(root: object, path: Path): unknown {
  let found: unknown = root;
  for (const name of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}
