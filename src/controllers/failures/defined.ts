/** The members that say something: what is absent must not be there as undefined. */
export function defined<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  const said = Object.entries(members).filter(([, value]) => value !== undefined);
  // cast: only undefined members were left out, which T has as optional.
  return Object.fromEntries(said) as T;
}
