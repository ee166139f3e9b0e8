export { decode, encode, put, remove } from "./codec.ts";
export { isImmutable } from "./immutable.ts";
export {
  afterUpdate,
  deletionDecision,
  deletionOf,
  foregroundFinalizer,
  isNamespace,
  namespaceFinalizers,
  orphanFinalizer,
  updateDecision,
  withoutFinalizer,
  withoutOwners,
  type Deletion,
  type DeletionOptions,
} from "./deletion.ts";
