import { CommandError } from '../terminal/command.ts'

/** Loads a package that not every installation has. If it is missing, the error names the setting that needs it. */
export async function optionalPackage<T>(name: string, setting: string): Promise<T> {
  try {
    return (await import(name)) as T // safe: all packages are released together, and a test loads them
  } catch (cause) {
    const { code, message } = cause as { readonly code?: unknown; readonly message?: string }
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message?.includes(name)) throw cause
    throw new CommandError(`The setting ${setting} needs ${name}, which is not installed.`, {
      code: 'PACKAGE_MISSING',
      hint: `npm install ${name}`,
      cause,
    })
  }
}
