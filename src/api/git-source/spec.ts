import { namespaceName, objectName } from "../parts/names.ts";
import { ref, secretKeyRef } from "../parts/references.ts";
import {
  boolean,
  exactlyOne,
  integer,
  object,
  optional,
  rule,
  string,
  withDefault,
} from "../schema/index.ts";

const refName = { minLength: 1, maxLength: 255, pattern: "^[A-Za-z0-9_][A-Za-z0-9_./+-]*$" };

const revision = object(
  "Which commit to apply. Absent: that of the repository's default branch.",
  {
    branch: optional(string("The newest commit of this branch.", refName)),
    tag: optional(string("The commit of this tag.", refName)),
    commit: optional(
      string("This very commit, by its whole hash.", {
        maxLength: 64,
        pattern: "^([0-9a-f]{40}|[0-9a-f]{64})$",
      }),
    ),
  },
  {
    rules: [exactlyOne(["branch", "tag", "commit"], "give exactly one of branch, tag and commit")],
  },
);

const prune = object("What happens to objects whose file is gone.", {
  enabled: withDefault(boolean("Whether they are deleted."), true),
  budgetPerHour: withDefault(
    integer("How many may be deleted within an hour. More are held back until a person agrees.", {
      minimum: 0,
      maximum: 10_000,
    }),
    5,
  ),
});

export const gitSourceSpec = object(
  "What is kept applied.",
  {
    url: string("The repository, as `https://…` or `ssh://git@…`.", {
      minLength: 8,
      maxLength: 1024,
      pattern: "^[^\\s]+$",
      rules: [
        rule(
          "self.startsWith('https://') || self.startsWith('ssh://')",
          "url is https://host/path or ssh://git@host/path; the form git@host:path is not understood",
        ),
        rule(
          "!self.matches('^https://[^/]*@')",
          "url cannot carry a user or password: put them into the Secret of credentials",
        ),
      ],
    }),
    revision: optional(revision),
    path: withDefault(
      string("The directory in the repository. A kustomization in it is built.", {
        minLength: 1,
        maxLength: 512,
        pattern: "^[A-Za-z0-9_./+-]+$",
        rules: [
          rule(
            "!self.startsWith('/') && !self.contains('..')",
            "path is relative to the repository and cannot leave it",
          ),
        ],
      }),
      ".",
    ),
    credentials: optional(
      object("How the repository is read. Absent: without credentials.", {
        secretRef: ref(
          "Secret",
          "The Secret of this namespace. https: keys `username` and `password`. ssh: `identity` and `known_hosts`. When the url changes, it is not sent there until it is written anew or another one is named.",
        ),
      }),
    ),
    serviceAccountName: objectName(
      "The ServiceAccount of this namespace as which objects are applied. It can do no more than that account may.",
    ),
    targetNamespace: optional(
      namespaceName("The namespace of objects that name none. Absent: that of this object."),
    ),
    intervalSeconds: withDefault(
      integer("How often the repository is looked at.", { minimum: 10, maximum: 86_400 }),
      60,
    ),
    webhookSecretRef: optional(
      secretKeyRef("The secret with which pushes are announced, so that nobody waits.", "token"),
    ),
    decryption: optional(
      object("How encrypted files are read.", {
        secretRef: ref("Secret", "The Secret of this namespace with the age keys."),
      }),
    ),
    verification: optional(
      object("Apply only commits that were signed.", {
        secretRef: ref("Secret", "The Secret of this namespace with the public keys to trust."),
      }),
    ),
    prune: withDefault(prune, {}),
  },
  {
    rules: [
      rule(
        "!self.url.startsWith('ssh://') || has(self.credentials)",
        "a repository over ssh needs credentials: a Secret with identity and known_hosts",
        { reason: "FieldValueRequired", fieldPath: ".credentials" },
      ),
    ],
  },
);
