import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Store } from "../../store/index.ts";
import { createMemoryDisk, openStore } from "../../store/index.ts";
import { createSeededRandom } from "../fixture.ts";
import type { NewUser } from "./index.ts";
import {
  authenticate,
  createUserAuthenticator,
  createUserSecret,
  readUserSecret,
  userSecretType,
} from "./index.ts";

const random = createSeededRandom();
const ada: NewUser = { name: "ada", role: "edit" };

function openMemoryStore(): Promise<Store> {
  return openStore({ journal: createMemoryDisk().open(), clock: new VirtualClock() });
}

async function put(store: Store, object: KubeObject): Promise<void> {
  const id = `${object.metadata.namespace}/${object.metadata.name}`;
  const encode = (): Uint8Array => Buffer.from(JSON.stringify(object));
  await store.write({ bucket: "core/secrets", id }, () => ({ do: "put", encode }));
}

async function remove(store: Store, object: KubeObject): Promise<void> {
  const id = `${object.metadata.namespace}/${object.metadata.name}`;
  const encode = (): Uint8Array => Buffer.from(JSON.stringify(object));
  await store.write({ bucket: "core/secrets", id }, () => ({ do: "delete", encode }));
}

test("a user's Secret holds the hash of the token and never the token", () => {
  const { secret, token } = createUserSecret(ada, { random });
  assert.match(token, /^berth_[A-Za-z0-9_-]{43}$/);
  const stored = JSON.stringify(secret);
  assert.equal(stored.includes(token), false);
  assert.equal(stored.includes(Buffer.from(token).toString("base64")), false);
  assert.equal(secret["type"], userSecretType);
  assert.equal(secret.metadata.namespace, "berth-system");
});

test("no two users get the same token", () => {
  const tokens = Array.from({ length: 50 }, () => createUserSecret(ada, { random }).token);
  assert.equal(new Set(tokens).size, 50);
});

test("a user is read back from their Secret with the groups of their role", () => {
  const { secret } = createUserSecret({ ...ada, groups: ["ops"] }, { random });
  const user = readUserSecret({ ...secret, metadata: { ...secret.metadata, uid: "u-1" } })?.user;
  assert.deepEqual(user, {
    name: "ada",
    uid: "u-1",
    groups: ["berth:edit", "ops", "system:authenticated"],
  });
});

test("a user of namespaces gets the role there and not everywhere", () => {
  const { secret } = createUserSecret({ ...ada, namespaces: ["team-a", "team-b"] }, { random });
  assert.deepEqual(readUserSecret(secret)?.user.groups, [
    "berth:edit:team-a",
    "berth:edit:team-b",
    "system:authenticated",
  ]);
});

test("names and restrictions that make no sense are refused in a sentence", () => {
  const bad: Partial<NewUser>[] = [
    { name: "" },
    { name: "system:berth" },
    { name: "Ada" },
    { name: "a/b" },
    { name: "x".repeat(64) },
    { namespaces: ["berth-system"] },
    { namespaces: ["no,good"] },
    { groups: ["berth:admin"] },
    { groups: ["system:masters"] },
    { groups: ["a,b"] },
  ];
  for (const part of bad) {
    const make = (): unknown => createUserSecret({ ...ada, ...part }, { random });
    assert.throws(make, (error) => error instanceof ApiError && error.code === 400);
  }
});

test("groups that grant rights cannot be smuggled in by hand", () => {
  const { secret } = createUserSecret(ada, { random });
  const groups = Buffer.from("berth:admin,berth:system,system:masters,ops").toString("base64");
  const edited = { ...secret, data: { ...(secret["data"] as object), groups } };
  assert.deepEqual(readUserSecret(edited)?.user.groups, [
    "berth:edit",
    "ops",
    "system:authenticated",
  ]);
});

test("a Secret that is not whole is nobody", () => {
  const { secret } = createUserSecret(ada, { random });
  const data = secret["data"] as Record<string, string>;
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  const broken: KubeObject[] = [
    { ...secret, type: "Opaque" },
    { ...secret, data: {} },
    { ...secret, data: { ...data, role: encode("root") } },
    { ...secret, data: { ...data, role: encode("system") } },
    { ...secret, data: { ...data, role: encode("toString") } },
    { ...secret, data: { ...data, name: encode("system:berth") } },
    { ...secret, data: { ...data, tokenSha256: encode("") } },
    { ...secret, data: { ...data, namespaces: encode("") } },
    { ...secret, data: { ...data, namespaces: encode(",") } },
    { ...secret, metadata: { ...secret.metadata, deletionTimestamp: "2026-11-15T00:00:00Z" } },
  ];
  for (const candidate of broken) assert.equal(readUserSecret(candidate), undefined);
  assert.equal(readUserSecret(null), undefined);
  assert.equal(readUserSecret([]), undefined);
});

test("users are known from the start and as they come", async () => {
  const store = await openMemoryStore();
  const early = createUserSecret(ada, { random });
  await put(store, early.secret);
  const users = createUserAuthenticator(store);
  assert.equal(users.authenticate(early.token)?.name, "ada");
  const late = createUserSecret({ name: "bob", role: "view" }, { random });
  assert.equal(users.authenticate(late.token), undefined);
  await put(store, late.secret);
  assert.equal(users.authenticate(late.token)?.name, "bob");
});

test("a token is dead as soon as the deletion of its Secret is acknowledged", async () => {
  const store = await openMemoryStore();
  const { secret, token } = createUserSecret(ada, { random });
  const users = createUserAuthenticator(store);
  await put(store, secret);
  assert.equal(users.authenticate(token)?.name, "ada");
  await remove(store, secret);
  assert.equal(users.authenticate(token), undefined);
});

test("a new token for a user ends the old one", async () => {
  const store = await openMemoryStore();
  const users = createUserAuthenticator(store);
  const first = createUserSecret(ada, { random });
  const second = createUserSecret({ ...ada, role: "view" }, { random });
  await put(store, first.secret);
  await put(store, second.secret);
  assert.equal(users.authenticate(first.token), undefined);
  assert.deepEqual(users.authenticate(second.token)?.groups.slice(0, 1), ["berth:view"]);
});

test("a Secret outside of the system namespace makes nobody a user", async () => {
  const store = await openMemoryStore();
  const users = createUserAuthenticator(store);
  const { secret, token } = createUserSecret(ada, { random });
  await put(store, { ...secret, metadata: { ...secret.metadata, namespace: "default" } });
  await put(store, { ...secret, metadata: { ...secret.metadata, namespace: "berth-systemx" } });
  assert.equal(users.authenticate(token), undefined);
});

test("the hash itself is no token", async () => {
  const store = await openMemoryStore();
  const users = createUserAuthenticator(store);
  const { secret } = createUserSecret(ada, { random });
  await put(store, secret);
  const { tokenSha256 } = secret["data"] as Record<string, string>;
  const hash = Buffer.from(tokenSha256 ?? "", "base64").toString();
  assert.equal(users.authenticate(hash), undefined);
});

test("after closing, the index no longer follows the store", async () => {
  const store = await openMemoryStore();
  const users = createUserAuthenticator(store);
  users.close();
  const { secret, token } = createUserSecret(ada, { random });
  await put(store, secret);
  assert.equal(users.authenticate(token), undefined);
});

test("only a bearer token in its header lets anybody in", () => {
  const user = { name: "ada", uid: "1", groups: [] };
  const authenticators = [
    { authenticate: () => undefined },
    { authenticate: (token: string) => (token === "good" ? user : undefined) },
  ];
  const ask = (header?: string): unknown => {
    return authenticate(authenticators, header === undefined ? {} : { authorization: header });
  };
  assert.equal(ask("Bearer good"), user);
  assert.equal(ask("bearer  good "), user);
  const refusedHeaders = [undefined, "", "good", "Basic good", "Bearer", "Bearer ", "Bearer bad"];
  const joined = "Bearer good, Bearer good";
  for (const header of [...refusedHeaders, joined, `Bearer ${"x".repeat(10_000)}`]) {
    assert.throws(
      () => ask(header),
      (error) => error instanceof ApiError && error.code === 401,
    );
  }
});
