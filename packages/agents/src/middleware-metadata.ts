import type { MiddlewareMetadata } from './middleware.ts'

/** A map whose entries are also properties (A32): the protocol types it as a map and uses it as an object. */
export function middlewareMetadata(
  entries: Readonly<Record<string, unknown>> = {},
): MiddlewareMetadata {
  const map = new Map<string, unknown>(Object.entries(entries))
  return new Proxy(map, {
    get(target, name) {
      if (typeof name === 'string' && target.has(name)) return target.get(name)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
    set: (target, name, value) => typeof name === 'string' && Boolean(target.set(name, value)),
    has: (target, name) => target.has(name as string) || Reflect.has(target, name),
    deleteProperty: (target, name) => target.delete(name as string) || true,
    ownKeys: (target) => [...target.keys()],
    getOwnPropertyDescriptor: (target, name) =>
      target.has(name as string)
        ? {
            value: target.get(name as string),
            enumerable: true,
            configurable: true,
            writable: true,
          }
        : undefined,
  }) as MiddlewareMetadata // the proxy is what gives it properties
}
