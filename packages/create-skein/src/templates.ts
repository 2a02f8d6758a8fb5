import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'

/** A template, as the question and the last lines of the output describe it. */
export interface Template {
  readonly title: string
  /** What is in it, in one line. */
  readonly about: string
  /** The oldest Node that runs it. */
  readonly node: readonly [major: number, minor: number]
  /** The script that shows it at work. */
  readonly script: 'dev' | 'start'
  /** Folders below `templates/`, in the order in which they are copied. */
  readonly layers: readonly string[]
}

/** The names that `--template` takes. */
export type TemplateName = 'chat' | 'worker' | 'backoffice' | 'library'

export const TEMPLATES: Readonly<Record<TemplateName, Template>> = {
  chat: {
    title: 'Chat',
    about:
      'an agent with tools, and a page (Vite, React, useChat) that streams and asks for approval',
    node: [24, 0],
    script: 'dev',
    layers: ['served', 'chat'],
  },
  worker: {
    title: 'Worker with reviewer',
    about: 'one model writes, another reviews until it accepts',
    node: [24, 0],
    script: 'dev',
    layers: ['served', 'worker'],
  },
  backoffice: {
    title: 'Back office',
    about: 'tools with undo, evidence, and a person who approves what is risky',
    node: [24, 0],
    script: 'dev',
    layers: ['served', 'backoffice'],
  },
  library: {
    title: 'Library',
    about: 'models and agents in a program of yours; no server',
    node: [22, 18],
    script: 'start',
    layers: ['library'],
  },
}

/** An error that the user can fix; `hint` says how. */
export class CreateError extends Error {
  readonly code: string
  readonly hint: string
  /** 2 for a wrong command line, as with the command `skein`. */
  readonly exitCode: 1 | 2

  constructor(
    message: string,
    { code, hint, exitCode = 2 }: { code: string; hint: string; exitCode?: 1 | 2 },
  ) {
    super(message)
    this.name = 'CreateError'
    this.code = code
    this.hint = hint
    this.exitCode = exitCode
  }
}

/**
 * Returns why a project cannot be created in this folder; undefined if it can. A folder with only
 * `.git` counts as empty.
 */
export function folderProblem(folder: string): string | undefined {
  try {
    const found = readdirSync(resolve(folder)).filter((name) => name !== '.git')
    if (found.length === 0) return undefined
    return `The folder ${shown(folder)} is not empty: it has ${found.slice(0, 3).join(', ')}${found.length > 3 ? ' …' : ''}.`
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    return code === 'ENOTDIR'
      ? `${shown(folder)} is a file.`
      : `The folder ${shown(folder)} cannot be read (${code}).`
  }
}

/** Writes the files of a template into a folder that is empty or does not exist. */
export function createProject(name: TemplateName, folder: string): void {
  const problem = folderProblem(folder)
  if (problem !== undefined)
    throw new CreateError(problem, {
      code: 'FOLDER_NOT_EMPTY',
      hint: 'Name a folder that does not exist yet; nothing was written.',
    })
  const target = resolve(folder)
  const templates = join(dirname(findPackageJSON(import.meta.url)!), 'templates')
  try {
    mkdirSync(target, { recursive: true })
    for (const layer of TEMPLATES[name].layers)
      cpSync(join(templates, layer), target, { recursive: true })
    // npm leaves a .gitignore out of packages.
    renameSync(join(target, '_gitignore'), join(target, '.gitignore'))
    const example = readFileSync(join(target, '.env.example'))
    writeFileSync(join(target, '.env'), example, { mode: 0o600 })
    const file = join(target, 'package.json')
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest
    const named = { ...manifest, name: packageName(basename(target), manifest) }
    writeFileSync(file, `${JSON.stringify(named, null, 2)}\n`)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new CreateError(`The project cannot be written into ${shown(folder)}: ${message}.`, {
      code: 'FOLDER_UNWRITABLE',
      hint: 'Name a folder that you may write to.',
      exitCode: 1,
    })
  }
}

/** The fields of a template's package.json that are read here. */
interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/**
 * Makes a name that npm accepts from the name of a folder. npm refuses a project with the name of one
 * of its dependencies, so the name is changed then, e.g. after `npm create skein skein`.
 */
export function packageName(folder: string, { dependencies, devDependencies }: Manifest): string {
  const name = folder
    .toLowerCase()
    .split(/[^a-z0-9._]+/)
    .filter((part) => part !== '')
    .join('-')
    .replace(/^[._-]+/, '')
    .slice(0, 200)
  const isTaken = Object.hasOwn({ ...dependencies, ...devDependencies }, name)
  if (name === '' || name === 'node_modules') return 'skein-app'
  return isTaken ? `${name}-app` : name
}

/** Returns the path of a folder as one would type it in the current folder. */
export function shown(folder: string): string {
  return relative('', resolve(folder)) || '.'
}
