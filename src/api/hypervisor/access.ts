import {
  boolean,
  byteSize,
  integer,
  listMap,
  object,
  optional,
  set,
  string,
} from "../schema/index.ts";
import type { Field } from "../schema/index.ts";
import { hypervisorName, namespaceOrAll } from "../parts/names.ts";

/** As many namespaces as one object may speak of. */
const namespacesMax = 256;

/** A name on the hypervisor, or `*` for all of them. */
function nameOrAll(description: string): Field<string> {
  const name = hypervisorName(description);
  return {
    ...name,
    schema: {
      ...name.schema,
      pattern: `^(\\*|[A-Za-z0-9_]([A-Za-z0-9 _.()+-]*[A-Za-z0-9_.)+-])?)$`,
    },
  };
}

const entry = object("What machines of one namespace may use.", {
  namespace: namespaceOrAll("The namespace, or `*` for every one that has no entry of its own."),
  networks: optional(
    set(
      "Bridges that they may name themselves; `*` is all. Absent: none. A VMNetwork has its own allowedNamespaces.",
      nameOrAll("A bridge, or `*`."),
      {
        maxItems: 128,
      },
    ),
  ),
  storages: optional(
    set("Storages that they may use; `*` is all. Absent: none.", nameOrAll("A storage, or `*`."), {
      maxItems: 128,
    }),
  ),
  externalId: optional(boolean("Whether they may choose the id of a machine. Not given: false.")),
  adopt: optional(
    boolean("Whether they may take over machines that are already there. Not given: false."),
  ),
  importPaths: optional(
    set(
      "Directories on the hypervisor from which they may import disks. Absent: none.",
      string("An absolute path that ends with a slash, such as `/srv/import/`.", {
        minLength: 2,
        maxLength: 512,
        pattern: "^/([A-Za-z0-9_][A-Za-z0-9_.+-]*/)+$",
      }),
      { maxItems: 64 },
    ),
  ),
  passthrough: optional(
    set(
      "Mappings of PCI and USB devices that they may attach; `*` is all. Absent: none.",
      nameOrAll("A resource mapping, or `*`."),
      { maxItems: 64 },
    ),
  ),
});

export const allow = listMap(
  "What the machines of each namespace may use. Absent: every namespace may use all networks and storages and choose ids. To adopt, to import from a path and to pass devices through always needs an entry. Where there are entries, a namespace that none of them names may use nothing.",
  entry,
  { key: "namespace", maxItems: namespacesMax },
);

export const quotas = listMap(
  "How much the machines of each namespace may take together. Absent: no bounds.",
  object("The bounds of one namespace.", {
    namespace: namespaceOrAll(
      "The namespace, or `*` for each of those that have no entry of their own.",
    ),
    machines: optional(integer("Machines.", { minimum: 0, maximum: 1_000_000 })),
    cpu: optional(integer("Cores of all machines.", { minimum: 0, maximum: 1_000_000 })),
    memory: optional(byteSize("Memory of all machines, such as `256Gi`.")),
    storage: optional(byteSize("Space of all their disks, such as `4Ti`.")),
  }),
  { key: "namespace", maxItems: namespacesMax },
);
