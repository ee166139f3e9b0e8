import type { FieldError, FieldErrorType } from "../../kernel/status.ts";
import { goQuote } from "./go-text.ts";
import { joinPath } from "./field-path.ts";

/**
 * One violation of the schema, on its way up to the root. `field` is relative to where it is held:
 * every level that it passes adds its own step, so that good objects never pay for paths.
 */
export interface Issue {
  field: string;
  readonly type: FieldErrorType;
  /** As shown; absent where Kubernetes shows none. */
  readonly value?: string;
  /** The sentence after the field's name: "in body should be …". */
  readonly says: string;
  /** What is printed instead of that sentence; "" for a bare "Required value". */
  readonly detail?: string;
  /** Composition errors (anyOf and so on) name their place in the text and have no field. */
  readonly isComposite?: boolean;
}

/** The whole sentence. Two issues with the same one are the same issue. */
function sentence(issue: Issue): string {
  return `${issue.isComposite ? goQuote(issue.field) : issue.field} ${issue.says}`;
}

/** Removes repetitions from `from` on: alternatives of one schema may find the same fault twice. */
export function dedupeIssues(issues: Issue[], from: number): void {
  const seen = new Set<string>();
  const kept = issues.slice(from).filter((issue) => {
    const text = sentence(issue);
    return !seen.has(text) && seen.add(text);
  });
  issues.length = from;
  issues.push(...kept);
}

/** The step of an index or key, put before what was found below it. */
export function prefixIssues(issues: readonly Issue[], from: number, step: string): void {
  for (let i = from; i < issues.length; i++) {
    const issue = issues[i];
    if (issue !== undefined) issue.field = joinPath(step, issue.field);
  }
}

/** `<nil>` is how Kubernetes prints the path of an error that has none. */
export function toFieldError(issue: Issue): FieldError {
  const isBare = issue.isComposite === true || issue.field === "";
  return {
    type: issue.type,
    field: isBare ? "<nil>" : issue.field,
    ...(issue.isComposite ? { value: '""' } : {}),
    ...(issue.value === undefined ? {} : { value: issue.value }),
    detail: issue.detail ?? sentence(issue),
  };
}
