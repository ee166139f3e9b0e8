import assert from "node:assert/strict";
import { test } from "node:test";
import { KubeconfigError, loadKubeconfig } from "./kubeconfig.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const text = `
apiVersion: v1
kind: Config
current-context: home
clusters:
- name: berth
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: ${base64("THE CA")}
- name: far
  cluster: { server: https://far/k8s, tls-server-name: near, insecure-skip-tls-verify: true }
users:
- name: admin
  user: { token: secret-token }
- name: cert
  user: { client-certificate-data: ${base64("CERT")}, client-key-data: ${base64("KEY")} }
- name: files
  user: { client-certificate: /c.pem, client-key: /k.pem, tokenFile: /token }
- name: exec
  user: { exec: { command: aws } }
- name: half
  user: { client-certificate-data: ${base64("CERT")} }
contexts:
- name: home
  context: { cluster: berth, user: admin, namespace: team }
- name: away
  context: { cluster: far, user: cert }
- name: files
  context: { cluster: berth, user: files }
- name: exec
  context: { cluster: berth, user: exec }
- name: half
  context: { cluster: berth, user: half }
- name: nobody
  context: { cluster: berth }
- name: dangling
  context: { cluster: gone, user: admin }
`;

test("reads the current context", () => {
  assert.deepEqual(loadKubeconfig(text), {
    server: "https://127.0.0.1:6443",
    ca: "THE CA",
    token: "secret-token",
    namespace: "team",
  });
});

test("reads another context, with certificates", () => {
  assert.deepEqual(loadKubeconfig(text, { context: "away" }), {
    server: "https://far/k8s",
    certificate: "CERT",
    key: "KEY",
    tlsServerName: "near",
    insecure: true,
  });
});

test("reads the files it names, if it may", () => {
  const readFile = (path: string): string => `content of ${path}\n`;
  const connection = loadKubeconfig(text, { context: "files", readFile });
  assert.equal(connection.token, "content of /token");
  assert.equal(connection.certificate, "content of /c.pem\n");
  assert.throws(() => loadKubeconfig(text, { context: "files" }), /names a file/);
});

test("reads a token in a file anew at each use, and keeps the last one that it could read", () => {
  let token: string | undefined = "first\n";
  const readFile = (path: string): string => {
    if (path === "/token" && token === undefined) throw new Error("no such file");
    return path === "/token" ? (token ?? "") : "PEM";
  };
  const { currentToken } = loadKubeconfig(text, { context: "files", readFile });
  assert.equal(currentToken?.(), "first");
  token = "second\n";
  assert.equal(currentToken?.(), "second");
  token = "";
  assert.equal(currentToken?.(), "second");
  token = undefined;
  assert.equal(currentToken?.(), "second");
});

test("a context without a user comes as nobody", () => {
  assert.deepEqual(loadKubeconfig(text, { context: "nobody" }), {
    server: "https://127.0.0.1:6443",
    ca: "THE CA",
  });
});

const refused: [reason: string, text: string, context: string | undefined, message: RegExp][] = [
  ["no YAML", "a: [", undefined, /it is not YAML/],
  ["no map", "[]", undefined, /it is not a map/],
  ["no current context", "contexts: []", undefined, /no current-context/],
  ["an unknown context", text, "x", /there is no context named "x"/],
  ["an unknown cluster", text, "dangling", /there is no cluster named "gone"/],
  ["an exec plugin", text, "exec", /"exec" are not supported/],
  ["a certificate without its key", text, "half", /belong together/],
  [
    "a server that is no URL",
    text.replace("https://127.0.0.1:6443", "nonsense"),
    "home",
    /not a URL/,
  ],
];

for (const [reason, config, context, message] of refused) {
  test(`refuses ${reason}`, () => {
    assert.throws(
      () => loadKubeconfig(config, context === undefined ? {} : { context }),
      (error) => {
        assert.ok(error instanceof KubeconfigError);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret-token/);
        return true;
      },
    );
  });
}
