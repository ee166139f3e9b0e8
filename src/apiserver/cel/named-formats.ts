import { isDate, isDateTime } from "./time.ts";
import { parseUrl } from "./url.ts";

/** A format of Kubernetes' `format` library: `format.dns1123Label().validate(x)`. */
export interface NamedFormat {
  readonly name: string;
  /** What is wrong with the text; nothing when it is valid. */
  readonly problemsOf: (text: string) => readonly string[];
  /** The size of the pattern that Kubernetes charges for. */
  readonly patternSize: number;
}

const label1123 = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  lengthMax: 63,
  words:
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " +
    "must start and end with an alphanumeric character",
  examples: ["my-name", "123-abc"],
  source: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
};
const subdomain1123 = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  lengthMax: 253,
  words:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " +
    "'.', and must start and end with an alphanumeric character",
  examples: ["example.com"],
  source: "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
};
const label1035 = {
  pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/,
  lengthMax: 63,
  words:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " +
    "alphabetic character, and end with an alphanumeric character",
  examples: ["my-name", "abc-123"],
  source: "[a-z]([-a-z0-9]*[a-z0-9])?",
};
const qualified = {
  pattern: /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/,
  lengthMax: 63,
  words:
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
    "alphanumeric character",
  examples: ["MyName", "my.name", "123-abc"],
  source: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
};
const labelValue = {
  pattern: /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/,
  lengthMax: 63,
  words:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or " +
    "'.', and must start and end with an alphanumeric character",
  examples: ["MyValue", "my_value", "12345"],
  source: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
};

type Rule = typeof label1123;

function problemsOfName(rule: Rule, text: string): string[] {
  const problems: string[] = [];
  if (Buffer.byteLength(text) > rule.lengthMax) {
    problems.push(`must be no more than ${rule.lengthMax} characters`);
  }
  if (!rule.pattern.test(text)) problems.push(patternProblem(rule));
  return problems;
}

function patternProblem({ words, examples, source }: Rule): string {
  const list = examples.map((example) => `'${example}', `).join(" or ");
  return `${words} (e.g. ${list}regex used for validation is '${source}')`;
}

/** A prefix ends in "-" because a suffix follows: the name with some suffix must be valid. */
function asPrefix(rule: Rule): (text: string) => string[] {
  return (text) => problemsOfName(rule, text.endsWith("-") ? `${text.slice(0, -1)}a` : text);
}

function qualifiedNameProblems(text: string): string[] {
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  const problems: string[] = [];
  if (parts.length > 2) return [`a qualified name ${shorten(patternProblem(qualified))}`];
  if (parts.length === 2) {
    if (parts[0] === "") problems.push("prefix part must be non-empty");
    else
      problems.push(
        ...problemsOfName(subdomain1123, parts[0] ?? "").map((p) => `prefix part ${p}`),
      );
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 characters");
  if (!qualified.pattern.test(name)) problems.push(`name part ${patternProblem(qualified)}`);
  return problems;
}

function shorten(problem: string): string {
  const hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
  return problem + hint;
}

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/;

function unless(isValid: (text: string) => boolean, problem: string): NamedFormat["problemsOf"] {
  return (text) => (isValid(text) ? [] : [problem]);
}

function uriProblems(text: string): string[] {
  if (text === "") return ['parse "": empty url'];
  return parseUrl(text) === undefined ? [`parse "${text}": invalid URI for request`] : [];
}

const formats: readonly (readonly [string, NamedFormat])[] = [
  ["dns1123Label", named("DNS1123Label", (text) => problemsOfName(label1123, text), 30)],
  [
    "dns1123Subdomain",
    named("DNS1123Subdomain", (text) => problemsOfName(subdomain1123, text), 60),
  ],
  ["dns1035Label", named("DNS1035Label", (text) => problemsOfName(label1035, text), 30)],
  ["qualifiedName", named("QualifiedName", qualifiedNameProblems, 60)],
  ["dns1123LabelPrefix", named("DNS1123LabelPrefix", asPrefix(label1123), 30)],
  ["dns1123SubdomainPrefix", named("DNS1123SubdomainPrefix", asPrefix(subdomain1123), 60)],
  ["dns1035LabelPrefix", named("DNS1035LabelPrefix", asPrefix(label1035), 30)],
  ["labelValue", named("LabelValue", (text) => problemsOfName(labelValue, text), 40)],
  ["uri", named("URI", uriProblems, 1000)],
  [
    "uuid",
    named(
      "uuid",
      unless((t) => uuid.test(t), "does not match the UUID format"),
      90,
    ),
  ],
  [
    "byte",
    named(
      "byte",
      unless((t) => base64.test(t), "invalid base64"),
      90,
    ),
  ],
  ["date", named("date", unless(isDate, "invalid date"), 77)],
  ["datetime", named("datetime", unless(isDateTime, "invalid datetime"), 77)],
];

function named(
  name: string,
  problemsOf: NamedFormat["problemsOf"],
  patternSize: number,
): NamedFormat {
  return { name, problemsOf, patternSize };
}

/** By the name that expressions use. */
export const namedFormats: ReadonlyMap<string, NamedFormat> = new Map(formats);
