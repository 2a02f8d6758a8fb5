import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import type { DiscoveredRegistry } from '@skein/runtime'
import { readEnvFile } from '../config/env-file.ts'
import { projectFolder } from '../config/project-folder.ts'
import { CommandError } from '../terminal/command.ts'

/**
 * Loads the definitions of a folder. Throws if the folder does not exist, or if definitions have problems;
 * the error then lists all of them.
 */
export async function loadDefinitions(named: string | undefined): Promise<DiscoveredRegistry> {
  const folder = definitionsFolder(named)
  readEnvFile()
  if (!existsSync(folder))
    throw new CommandError(`There is no folder ${folder}.`, {
      code: 'FOLDER_NOT_FOUND',
      hint: 'Name a folder that holds agents/, prompts/ and tools/.',
    })
  const { discover } = await import('@skein/runtime')
  return discover(folder)
}

/**
 * Returns the folder of the definitions: the named folder, the project if it has `agents/`, or the examples.
 */
export function definitionsFolder(named: string | undefined): string {
  if (named !== undefined) return resolve(named)
  if (!usesExamples(named)) return projectFolder()
  // The published package is JavaScript and contains the examples. The TypeScript sources run in a
  // clone of the repository, which has the examples in `examples/`.
  return import.meta.filename.endsWith('.js')
    ? join(packageFolder(), 'dist', 'example-agents')
    : join(packageFolder(), '..', '..', 'examples', 'agents')
}

/** Whether the examples of this package are used, because no folder is named and the project has no definitions. */
function usesExamples(named: string | undefined): boolean {
  return named === undefined && !existsSync(join(projectFolder(), 'agents'))
}

/** Says that the examples are used; undefined if they are not. */
export function examplesNotice(named: string | undefined): string | undefined {
  if (!usesExamples(named)) return undefined
  return `${projectFolder()} has no agents/, so the examples of Skein are used.`
}

/** Returns the folder of this package. Built code may lie in any folder below it, as the bundler chose. */
function packageFolder(): string {
  return dirname(findPackageJSON(import.meta.url)!)
}
