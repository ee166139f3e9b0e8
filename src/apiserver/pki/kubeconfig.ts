/**
 * A kubeconfig as text: one cluster, one user, one context. It holds the token, so whoever writes
 * it to a file makes that file its owner's alone.
 */
export function kubeconfigOf(options: {
  /** "https://127.0.0.1:6443" */
  readonly server: string;
  /** The authority's certificate, PEM. */
  readonly ca: string;
  readonly token: string;
  /** The user's name. */
  readonly name: string;
}): string {
  const { server, ca, token, name } = options;
  // A JSON string is a YAML string too, whatever is in it.
  const quote = (text: string): string => JSON.stringify(text);
  return `apiVersion: v1
kind: Config
clusters:
  - name: berth
    cluster:
      server: ${quote(server)}
      certificate-authority-data: ${Buffer.from(ca).toString("base64")}
users:
  - name: ${quote(name)}
    user:
      token: ${quote(token)}
contexts:
  - name: berth
    context:
      cluster: berth
      user: ${quote(name)}
      namespace: default
current-context: berth
`;
}
