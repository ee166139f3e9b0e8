/** What was frozen to its depths here: whole objects, and their members. */
const immutable = new WeakSet<object>();

/**
 * Whether a value can never change, so that what was once found out about it stays true. Known of
 * stored objects and their members, not of what is deeper within them.
 */
export function isImmutable(value: unknown): value is object {
  return typeof value === "object" && value !== null && immutable.has(value);
}

/**
 * Freezes an object to its depths. False where JSON would read it back as something else than it
 * is: then what was written must be read to know what is stored.
 */
export function makeImmutable(object: object): boolean {
  let isJson = true;
  for (const member of valuesOf(object)) {
    if (isImmutable(member)) continue;
    if (!freeze(member)) isJson = false;
    else if (typeof member === "object" && member !== null) immutable.add(member);
  }
  Object.freeze(object);
  if (isJson) immutable.add(object);
  return isJson;
}

/** False if there is anything within that JSON does not have, or writes as something else. */
function freeze(value: unknown): boolean {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object") return false;
  Object.freeze(value);
  let isJson = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  for (const member of valuesOf(value)) if (!freeze(member)) isJson = false;
  return isJson;
}

function valuesOf(object: object): readonly unknown[] {
  return Object.values(object);
}
