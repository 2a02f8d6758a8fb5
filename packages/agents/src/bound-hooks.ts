/**
 * An object that behaves as `hooks` but for some properties. Its functions are bound to the original,
 * so that the hooks of a class instance find their own fields, private ones too; it stays untouched.
 */
export function boundHooks<T extends object>(
  hooks: T,
  names: readonly (keyof T & string)[],
  changes: Partial<T>,
): T {
  const derived = Object.create(hooks) as T
  for (const name of names) {
    const hook = hooks[name]
    if (typeof hook === 'function') define(derived, name, hook.bind(hooks))
  }
  for (const [name, value] of Object.entries(changes)) define(derived, name, value)
  return derived
}

/** Not by assignment: the original may be frozen, and its properties are then read-only below too. */
function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true })
}
