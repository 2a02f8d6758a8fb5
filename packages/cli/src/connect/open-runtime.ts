import { randomBytes } from 'node:crypto'
import type { EmbeddedRuntime, Registry, RuntimeOptions, SecretKeyOptions } from '@skein/runtime'
import { CommandError } from '../terminal/command.ts'
import { stateFolder } from '../config/project-folder.ts'
import { readServerFile } from './server-file.ts'

/** Creates a runtime without threads, for commands that only read where there is no store yet. Nothing is written. */
export async function openEmptyRuntime(registry: Registry): Promise<EmbeddedRuntime> {
  const { createRuntime, memoryStore } = await import('@skein/runtime')
  return createRuntime({ registry, store: memoryStore(), secretKey: randomBytes(32) })
}

/** Opens the store of this folder and creates a runtime for it. Threads run once the runtime is started. */
export async function openRuntime(
  registry: Registry,
  options: Pick<RuntimeOptions, 'onError' | 'logger' | 'limits' | 'spending' | 'retention'>,
): Promise<EmbeddedRuntime> {
  const { createRuntime } = await import('@skein/runtime')
  try {
    return await createRuntime({ registry, folder: stateFolder(), ...options, ...secretKeys() })
  } catch (error) {
    if (!(error instanceof Error) || (error as { code?: unknown }).code !== 'STORE_LOCKED')
      throw error
    const server = readServerFile()
    throw new CommandError(error.message, {
      code: 'STORE_LOCKED',
      hint: server
        ? `A server runs there: ${server.url}. Use it with --url ${server.url}, or stop it (process ${server.pid}).`
        : 'Only one process can use a store: wait until the other one ends, or stop it.',
      cause: error,
    })
  }
}

/** The environment variable with the keys that encrypt stored secrets. */
export const SECRET_KEY_VARIABLE = 'SKEIN_SECRET_KEY'

/**
 * Returns the keys that encrypt stored secrets, from the environment: the current one, then older ones after
 * commas. If the variable is not set, a key is created and kept next to the store, which is only for development.
 */
function secretKeys(): SecretKeyOptions {
  const [secretKey, ...oldSecretKeys] = (process.env[SECRET_KEY_VARIABLE] ?? '')
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
  return secretKey === undefined ? { keepsSecretKeyWithData: true } : { secretKey, oldSecretKeys }
}
