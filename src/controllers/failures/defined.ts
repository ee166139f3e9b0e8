/** The members that say something: what is absent must not be there as undefined. */
export function defined<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  const said: Partial<T> = {};
  for (const key in members) if (members[key] !== undefined) said[key] = members[key];
  // cast: only undefined members were left out, which T has as optional.
  return said as T;
}
