/** What stands in place of a secret. */
export const redacted = "[redacted]";

/**
 * Texts that carry a secret by their form: a token of Proxmox, a bearer token, the password in a
 * URL, a parameter named like one, a private key.
 */
const forms: readonly (readonly [RegExp, string])[] = [
  [/(PVEAPIToken=[^=\s]+=)[^\s"',;]+/g, `$1${redacted}`],
  [/(PVEAuthCookie=)[^\s"',;]+/g, `$1${redacted}`],
  [/(\bBearer )[A-Za-z0-9._~+/=-]+/gi, `$1${redacted}`],
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${redacted}@`],
  [
    /((?:[?&;]|\b)(?:password|passwd|token|secret|api_?key|access_?key|signature|sig)=)[^\s&;"']+/gi,
    `$1${redacted}`,
  ],
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g, redacted],
];

/**
 * A text without what looks like a secret. A second line of defence for logs and bundles: the first
 * is that nobody puts one there.
 */
export function redact(text: string): string {
  return forms.reduce((left, [form, instead]) => left.replace(form, instead), text);
}
