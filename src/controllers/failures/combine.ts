import { severities, type Failure } from "../../hypervisor/index.ts";

/**
 * All that is wrong, in one failure: each thing with its number and what to do about it, the most
 * severe first. Whoever mends one need not find out about the next only then.
 */
export function combined(findings: readonly Failure[]): Failure {
  const [first, ...others] = withoutRepeats(findings).toSorted(bySeverity);
  if (first === undefined) return { category: "CreationFailed", message: "Nothing is wrong." };
  if (others.length === 0) return first;
  const all = [first, ...others];
  const remedies = numbered(all.map(({ remedy }) => remedy));
  const causes = numbered(all.map(({ cause }) => cause));
  const isUnderWay = all.every((one) => one.isUnderWay === true);
  const are = isUnderWay ? "are waited for" : "are wrong";
  return {
    category: first.category,
    message: `${all.length} things ${are}: ${numbered(all.map(({ message }) => message))}`,
    ...(isUnderWay ? { isUnderWay } : {}),
    ...(causes === "" ? {} : { cause: causes }),
    ...(remedies === "" ? {} : { remedy: remedies }),
  };
}

function bySeverity(left: Failure, right: Failure): number {
  return severities.indexOf(left.category) - severities.indexOf(right.category);
}

function withoutRepeats(findings: readonly Failure[]): Failure[] {
  return [...new Map(findings.map((finding) => [finding.message, finding])).values()];
}

/** "(1) … (2) …", each a sentence; who says nothing keeps its number. */
function numbered(texts: readonly (string | undefined)[]): string {
  const said = texts.flatMap((text, index) => {
    if (text === undefined) return [];
    return [`(${index + 1}) ${/[.!?…]$/.test(text) ? text : `${text}.`}`];
  });
  return said.join(" ");
}
