/**
 * A "property string": `local:vm-1-disk-0,cache=none,size=8G`. Kept as pairs in their order, so
 * that options which Berth does not know survive a change of the ones it does.
 */
export type Properties = readonly (readonly [key: string, value: string])[];

/** A value without a key belongs to `defaultKey`. */
export function parseProperties(text: string, defaultKey: string): Properties {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [defaultKey, part] : [part.slice(0, at), part.slice(at + 1)];
    });
}

/** The default key's value goes first and bare, as Proxmox itself writes it. */
export function formatProperties(properties: Properties, defaultKey: string): string {
  const bare = properties.filter(([key]) => key === defaultKey).map(([, value]) => value);
  const rest = properties
    .filter(([key]) => key !== defaultKey)
    .map(([key, value]) => `${key}=${value}`);
  return [...bare, ...rest].join(",");
}

export function property(properties: Properties, key: string): string | undefined {
  return properties.find(([candidate]) => candidate === key)?.[1];
}

/** Sets, changes or with undefined removes options; the others stay as and where they are. */
export function withProperties(
  properties: Properties,
  changes: Readonly<Record<string, string | undefined>>,
): Properties {
  const kept = properties
    .filter(([key]) => !(key in changes) || changes[key] !== undefined)
    .map(([key, value]) => [key, changes[key] ?? value] as const);
  const known = new Set(properties.map(([key]) => key));
  const added = Object.entries(changes).flatMap(([key, value]) => {
    return known.has(key) || value === undefined ? [] : [[key, value] as const];
  });
  return [...kept, ...added];
}

/** Options that all have keys, in this order; those without a value are left out. */
export function formatOptions(options: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(options)
    .flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]))
    .join(",");
}
