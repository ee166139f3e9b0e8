import { builtinResources } from "../../api/builtin/index.ts";
import { berthResources } from "../../api/index.ts";
import type { ApiServer, Lifecycle } from "../../apiserver/index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createDiscovery,
  createOpenApi,
  createResourceHandler,
  createRoleAuthorizer,
  createSchemaRunners,
  startLifecycle,
} from "../../apiserver/index.ts";
import { NetworkError } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { WireRequest, WireResponse } from "../../kernel/wire.ts";
import { createMemoryDisk, openStore, type MemoryDisk, type Store } from "../../store/index.ts";
import type { NamedDice } from "./dice.ts";
import type { Records } from "./records.ts";

// They hold nothing that a history changes, and take long to make.
const catalogue = createCatalogue([...builtinResources, ...berthResources]);
const runnerOf = createSchemaRunners();
const discovery = createDiscovery(catalogue);
const openApi = createOpenApi(catalogue);
const authorizer = createRoleAuthorizer();

export interface HouseOptions {
  readonly clock: Clock;
  readonly dice: NamedDice;
  readonly records: Records;
  /** A disk that has something already; absent: an empty one. */
  readonly disk?: MemoryDisk;
  /** Told when it was started and answers. */
  readonly onOpen: () => void;
}

interface Open {
  readonly store: Store;
  readonly server: ApiServer;
  readonly lifecycle: Lifecycle;
}

/** The API with its store, on a disk of memory that outlives it. */
export class House {
  readonly #options: HouseOptions;
  readonly disk: MemoryDisk;
  #open: Open | undefined;

  constructor(options: HouseOptions) {
    this.#options = options;
    const { clock, dice } = options;
    const flush = (complete: () => void): void => {
      void clock.after(dice.of("flush").between(0, 2), complete);
    };
    this.disk = options.disk ?? createMemoryDisk({ flush });
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Starts it on what the disk has. The clock is that of the process that it runs in. */
  async open(clock: Clock): Promise<void> {
    const { records, dice } = this.#options;
    const store = await openStore({ journal: this.disk.open(), clock });
    records.follow(store);
    const { random } = dice.of("server");
    const environment = { store, catalogue, clock, random, runnerOf };
    const server = createApiServer({
      catalogue,
      resources: createResourceHandler(environment),
      discovery,
      openApi,
      authenticators: [],
      authorizer,
      health: () => [],
      version: "0.0.0",
      clock,
      random,
      log: () => undefined,
    });
    this.#open = { store, server, lifecycle: startLifecycle(environment) };
    this.#options.onOpen();
  }

  /** What it keeps its objects in; nothing while it is down. */
  get store(): Store | undefined {
    return this.#open?.store;
  }

  /** The power fails, in the middle of a write if there is one. */
  crash(): void {
    this.disk.crash({ tear: this.#options.dice.of("tear").pick([0, 0.5, 1]) });
    this.#open = undefined;
  }

  /** Answers as the API does; nobody is there while it is down. */
  async handle(request: WireRequest): Promise<WireResponse> {
    if (this.#open === undefined) throw new NetworkError("Unreachable", "the API is down");
    return this.#open.server.handleAs(controllersUser, request);
  }
}
