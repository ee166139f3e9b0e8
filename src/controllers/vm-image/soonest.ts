import { settled, type Outcome } from "../../runtime/index.ts";

/** What follows from the outcomes of several places: the first of them decides when to go on. */
export function soonest(outcomes: readonly Outcome[]): Outcome {
  const atOnce = outcomes.find(({ type }) => type === "again");
  if (atOnce !== undefined) return atOnce;
  const waits = outcomes.filter((outcome) => outcome.type === "wait");
  const [first] = waits.toSorted((left, right) => left.afterMs - right.afterMs);
  return first ?? outcomes.find(({ type }) => type === "stalled") ?? settled;
}

/**
 * Does the same for each of several places. If it throws for one of them, the others get their turn
 * all the same, and then it is thrown.
 */
export async function forEach<Place>(
  places: readonly Place[],
  act: (place: Place) => Promise<Outcome | undefined>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const thrown: unknown[] = [];
  for (const place of places) {
    try {
      const outcome = await act(place);
      if (outcome !== undefined) outcomes.push(outcome);
    } catch (error) {
      thrown.push(error);
    }
  }
  if (thrown.length > 0) throw thrown[0];
  return outcomes;
}
