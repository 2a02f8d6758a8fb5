/**
 * Compares JSON without regard to the order of members. Where only equality matters, this is a tenth of the code of
 * `canonicalJson`.
 */
export function isSameJson(left: unknown, right: unknown): boolean {
  if (typeof left !== 'object' || typeof right !== 'object' || !left || !right)
    return left === right
  const members = Object.entries(left)
  if (Array.isArray(left) !== Array.isArray(right)) return false
  if (members.length !== Object.keys(right).length) return false
  return members.every(
    ([key, value]) =>
      Object.hasOwn(right, key) && isSameJson(value, (right as Record<string, unknown>)[key]),
  )
}
