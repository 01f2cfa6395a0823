/** A JSON document whose shape the test knows, or finds out to be another. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says what it expects
export function parseJson<Value>(text: string): Value {
  const value: Value = JSON.parse(text);
  return value;
}
