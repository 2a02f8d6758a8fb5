import child from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { VARIABLE } from './protocol.ts'

type Settings = { env?: NodeJS.ProcessEnv }

/** Node children have the preload too, also those that a program starts with an environment of its own. */
export function interceptChildren(): void {
  const names = [VARIABLE, 'NODE_OPTIONS']
  const inherited = names.map((name) => [name, process.env[name] ?? ''] as const)
  const prototype = child.ChildProcess.prototype as unknown as {
    spawn(options: { envPairs?: string[] }): unknown
  }
  const { spawn } = prototype
  prototype.spawn = function (options) {
    for (const [name, value] of inherited)
      if (options.envPairs && !options.envPairs.some((pair) => pair.startsWith(`${name}=`)))
        options.envPairs.push(`${name}=${value}`)
    return spawn.call(this, options)
  }
  const wrap = (name: 'spawnSync' | 'execSync' | 'execFileSync'): void => {
    const original = child[name] as (...given: unknown[]) => unknown
    const wrapped = (...given: unknown[]): unknown => {
      const settings = given.find(
        (one): one is Settings => typeof one === 'object' && one !== null && !Array.isArray(one),
      )
      const withEnv = settings?.env && {
        ...settings,
        env: { ...Object.fromEntries(inherited), ...settings.env },
      }
      return original(...given.map((one) => (one === settings ? (withEnv ?? one) : one)))
    }
    Object.assign(child, { [name]: wrapped })
  }
  wrap('spawnSync')
  wrap('execSync')
  wrap('execFileSync')
  syncBuiltinESMExports()
}
