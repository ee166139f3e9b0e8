const reserved = new Set(
  (
    "true false null in as break const continue else for function if import let loop package " +
    "namespace return var void while"
  ).split(" "),
);

const escapes: Readonly<Record<string, string>> = {
  __: "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};

/**
 * The name under which CEL knows a property: "foo-bar" is `foo__dash__bar`, "namespace" is
 * `__namespace__`. Undefined for names that CEL cannot know, such as "1st" or "a b".
 */
export function escapeProperty(property: string): string | undefined {
  if (reserved.has(property)) return `__${property}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined;
  return property.replaceAll(/__|[./-]/g, (text) => escapes[text] ?? text);
}
