import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Running, type Ended } from '../../cli/test/kit.ts'
import { startRegistry } from './packed.ts'

/** Where and with which variables a command line runs. */
export interface At {
  readonly cwd: string
  readonly env?: Record<string, string>
}

/** The machine of a person who has never seen Skein: an empty folder, npm, and a registry that has our packages. */
export interface NewUser {
  /** The environment of a machine that has nothing but npm and this Node. */
  machine(node?: string): Record<string, string>
  /** Starts a command line, as a person types it. */
  type(line: string, at: At): Running
  /** Runs a command line that has to succeed. */
  done(line: string, at: At): Promise<Ended>
  close(): void
}

/** Prepares an empty folder outside of the repository, so that nothing of it is found by accident. */
export async function startNewUser(home: string): Promise<NewUser> {
  const registry = await startRegistry()
  mkdirSync(join(home, 'cache'))
  // Contents that npm has fetched before are taken from its cache; what `npm create` installs is not.
  const contents = join(process.env['npm_config_cache'] ?? join(homedir(), '.npm'), '_cacache')
  mkdirSync(contents, { recursive: true })
  symlinkSync(contents, join(home, 'cache', '_cacache'))

  function machine(node: string = process.execPath): Record<string, string> {
    const bin = join(home, `bin-${createHash('sha256').update(node).digest('hex').slice(0, 8)}`)
    if (!existsSync(bin)) {
      mkdirSync(bin)
      symlinkSync(node, join(bin, 'node'))
    }
    // The root of the workspace has its own Node in front.
    const path = (process.env['PATH'] ?? '')
      .split(':')
      .filter((one) => !one.includes('node_modules'))
    return {
      PATH: [bin, ...path].join(':'),
      npm_config_registry: registry.url,
      npm_config_cache: join(home, 'cache'),
      npm_config_yes: 'true',
      npm_config_loglevel: 'error',
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      npm_config_update_notifier: 'false',
      NO_PROXY: '127.0.0.1,localhost',
    }
  }

  function type(line: string, { cwd, env }: At): Running {
    const [program = '', ...args] = line.split(' ')
    return new Running(args, { cwd, program, env: { ...machine(), ...env } })
  }

  async function done(line: string, at: At): Promise<Ended> {
    const ended = await type(line, at).ended
    if (ended.code !== 0)
      throw new Error(`${line} ended with ${ended.code}:\n${ended.stdout}\n${ended.stderr}`)
    return ended
  }

  return { machine, type, done, close: () => registry.close() }
}

/** The two commands that `npm create skein` prints. */
export function nextCommands(output: string): readonly string[] {
  return [...output.matchAll(/^ {2}(\S.*)$/gm)].map(([, line]) => line!)
}

/** The address that a line of the output names, e.g. `page    http://localhost:5173/`. */
export async function addressOf(running: Running, name: string): Promise<string> {
  await running.until('stdout', new RegExp(`^${name} .*\\n`, 'm'))
  return new RegExp(`^${name} +(\\S+)`, 'm').exec(running.stdout)![1]!
}
