interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * A variable of the environment; undefined where it is unset or empty, or where there is no
 * environment (a browser). The only place in this package that reads it.
 */
export function environment(name: string): string | undefined {
  try {
    const value = (globalThis as { process?: ProcessLike }).process?.env?.[name]
    return value === '' ? undefined : value
  } catch {
    return undefined // Deno throws when the variable was not allowed: for us it is not there
  }
}
