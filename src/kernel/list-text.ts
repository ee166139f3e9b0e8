/** So many names a person reads; a longer list says how many more there are. */
const shownMax = 10;

/**
 * Names in one text, at most ten of them. Whatever a hypervisor lists may be of any length, and a
 * status, an event or an intent may not. Pure.
 */
export function listText(names: Iterable<string>, separator = ", "): string {
  const all = [...names];
  const shown = all.slice(0, shownMax).join(separator);
  const more = all.length - shownMax;
  return more > 0 ? `${shown} … and ${more} more` : shown;
}
