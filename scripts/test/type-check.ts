import { globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { groupOfProgram } from '../examples/groups.ts'
import { root, run } from '../workspace.ts'
import { linkedPeers, type Group } from './groups.ts'

/**
 * Compiles the files that import packages of a group, which `npm run check` leaves out. Returns what the compiler
 * says; empty when all is well, or when the group brings no package that a file imports.
 */
export async function checkTypes({ name, peers }: Group): Promise<string> {
  if (!peers.some((one) => linkedPeers.has(one))) return ''
  const all = globSync('{packages/*/{src,test},conformance,examples,bench,scripts}/**/*.{ts,tsx}', {
    cwd: root,
    exclude: (path) => /node_modules|\bdist\b|next-app|migrate[/\\]theirs/.test(path),
  })
  const isTest = (path: string): boolean => /\.test(-d)?\.tsx?$/.test(path)
  const files = all.filter((path) =>
    isTest(path)
      ? new RegExp(`\\.${name}\\.test(-d)?\\.tsx?$`).test(path)
      : groupOfProgram(join(root, path)) === name,
  )
  mkdirSync(join(root, '.tmp'), { recursive: true })
  const config = join(root, '.tmp', `tsconfig.${name}.json`)
  const paths = files.map((path) => join('..', path).replaceAll('\\', '/'))
  // Programs export nothing, so the rules for declarations are none of theirs.
  const options = {
    typeRoots: ['../node_modules/@types'],
    declaration: false,
    isolatedDeclarations: false,
  }
  writeFileSync(
    config,
    JSON.stringify(
      {
        extends: '../tsconfig.json',
        compilerOptions: options,
        files: paths,
        include: [],
        exclude: [],
      },
      null,
      1,
    ),
  )
  const { code, output } = await run('tsc', ['--noEmit', '-p', config], { quiet: true })
  return code === 0 ? '' : output.trim() || `tsc ended with ${code}`
}
