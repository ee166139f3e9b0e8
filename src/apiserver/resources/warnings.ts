/** kube-apiserver's bound on all warnings of one answer. */
const warningsBytesMax = 4096;

/** The Warning header of an answer: all warnings in one, as RFC 7234 lets them be joined. */
export function warningHeader(warnings: readonly string[]): { warning?: string } {
  const values: string[] = [];
  let bytes = 0;
  for (const warning of new Set(warnings)) {
    const value = `299 - ${quoted(warning)}`;
    bytes += value.length;
    if (bytes > warningsBytesMax) break;
    values.push(value);
  }
  return values.length === 0 ? {} : { warning: values.join(", ") };
}

/** A quoted string of printable ASCII: a line break would end the header and begin another. */
function quoted(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return `"${printable.replaceAll(/[\\"]/g, "\\$&")}"`;
}
