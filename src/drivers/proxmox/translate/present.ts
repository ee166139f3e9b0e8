/** The members that have a value. Absent and undefined are two things; here only the first is. */
export function present<T extends object>(
  members: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const said: Partial<T> = {};
  for (const key in members) if (members[key] !== undefined) said[key] = members[key];
  // cast: what was left out is exactly what the type leaves out.
  return said as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Something made of a value, where there is one. */
export function ifSaid<T, R>(value: T | undefined, make: (value: T) => R): R | undefined {
  return value === undefined ? undefined : make(value);
}
