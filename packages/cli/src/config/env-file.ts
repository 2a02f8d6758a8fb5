import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { projectFolder } from './project-folder.ts'

/** Returns the path of the `.env` file of the project. */
export function envFile(): string {
  return join(projectFolder(), '.env')
}

/** The variables that this process has from `.env`. Like `process.env`, which does not say where a value is from. */
const fromFile = new Set<string>()

/** Sets those variables of `.env` in the project that are not set yet. */
export function readEnvFile(): void {
  if (!existsSync(envFile())) return
  for (const [name, value] of Object.entries(parseEnv(readFileSync(envFile(), 'utf8'))))
    if (process.env[name] === undefined) {
      process.env[name] = value
      fromFile.add(name)
    }
}

/** Whether this process has a variable from `.env`, so that a path in it starts at the folder of that file. */
export function isFromEnvFile(name: string): boolean {
  return fromFile.has(name)
}
