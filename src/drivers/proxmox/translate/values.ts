/** The texts of a config, by key. */
export type Values = Readonly<Record<string, string>>;

export function flag(isSet: boolean): string {
  return isSet ? "1" : "0";
}

export function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
