/**
 * The forms of names, as Kubernetes 1.32 checks and words them. Each returns what is wrong, as
 * sentences without a subject; an empty list means that the value is fine.
 */
export type NameRule = (value: string) => string[];

const dnsLabel = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dnsSubdomain = `${dnsLabel}(\\.${dnsLabel})*`;
const qualified = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

const dnsLabelPattern = new RegExp(`^${dnsLabel}$`);
const dnsSubdomainPattern = new RegExp(`^${dnsSubdomain}$`);
const qualifiedPattern = new RegExp(`^${qualified}$`);
const labelValuePattern = new RegExp(`^(${qualified})?$`);

const edges = "and must start and end with an alphanumeric character";
const qualifiedWords = `must consist of alphanumeric characters, '-', '_' or '.', ${edges}`;
const qualifiedMismatch = mismatch(qualifiedWords, qualified, ["MyName", "my.name", "123-abc"]);

/** A DNS-1123 label: the name of a Namespace. */
export function dnsLabelErrors(value: string): string[] {
  const errors = tooLong(value, 63);
  if (dnsLabelPattern.test(value)) return errors;
  if (dnsSubdomainPattern.test(value)) return [...errors, "must not contain dots"];
  const words = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${edges}`;
  return [...errors, mismatch(words, dnsLabel, ["my-name", "123-abc"])];
}

/** A DNS-1123 subdomain: the name of nearly everything. */
export function dnsSubdomainErrors(value: string): string[] {
  const errors = tooLong(value, 253);
  if (dnsSubdomainPattern.test(value)) return errors;
  const words = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${edges}`;
  return [...errors, mismatch(words, dnsSubdomain, ["example.com"])];
}

/** "name" or "prefix.example/name": label and annotation keys, finalizers. */
export function qualifiedNameErrors(value: string): string[] {
  const parts = value.split("/");
  const [first = "", second] = parts;
  if (parts.length > 2) {
    const prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    return [`a qualified name ${qualifiedMismatch} ${prefix}`];
  }
  const errors = second === undefined ? [] : prefixErrors(first);
  const name = second ?? first;
  if (name === "") errors.push("name part must be non-empty");
  else errors.push(...tooLong(name, 63).map((error) => `name part ${error}`));
  if (!qualifiedPattern.test(name)) errors.push(`name part ${qualifiedMismatch}`);
  return errors;
}

export function labelValueErrors(value: string): string[] {
  const errors = tooLong(value, 63);
  if (labelValuePattern.test(value)) return errors;
  const words = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${edges}`;
  return [...errors, mismatch(words, `(${qualified})?`, ["MyValue", "my_value", "12345"])];
}

/** The rule for a prefix to which something is appended: it may end in a dash. */
export function asPrefix(rule: NameRule): NameRule {
  return (value) => {
    const ends = value.length > 1 && value.endsWith("-");
    return rule(ends ? `${value.slice(0, -2)}a` : value);
  };
}

function prefixErrors(prefix: string): string[] {
  if (prefix === "") return ["prefix part must be non-empty"];
  return dnsSubdomainErrors(prefix).map((error) => `prefix part ${error}`);
}

function tooLong(value: string, most: number): string[] {
  if (Buffer.byteLength(value) <= most) return [];
  return [`must be no more than ${most} characters`];
}

// The stray commas before "or" are Kubernetes' own; programs compare these sentences.
function mismatch(words: string, pattern: string, examples: readonly string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(" or ");
  return `${words} (e.g. ${shown}regex used for validation is '${pattern}')`;
}
