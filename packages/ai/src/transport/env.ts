interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Reads an environment variable. Undefined if it is unset or empty, or if there is no environment (a
 * browser). The only place in this package that reads the environment.
 */
export function environment(name: string): string | undefined {
  try {
    const value = (globalThis as { process?: ProcessLike }).process?.env?.[name]
    return value === '' ? undefined : value
  } catch {
    return undefined // Deno throws without permission to read the variable: treated as unset
  }
}
