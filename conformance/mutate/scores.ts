import type { MutantKind } from './mutants.ts'

/** A mutant that was on while the tests of a row ran. */
export interface TriedMutant {
  readonly file: string
  readonly line: number
  readonly kind: MutantKind
  readonly before: string
  readonly after: string
  /** Whether one of the row's own tests failed, or did not end. */
  readonly isNoticed: boolean
}

export interface RowScore {
  /** Why no mutant was tried. */
  readonly problem?: string
  /** How many mutants the row's tests reach; those tried are a sample of them. */
  readonly reached: number
  readonly mutants: readonly TriedMutant[]
}

/** How many mutants were noticed, by the package that the changed code belongs to. */
export function packageLines(rows: readonly RowScore[]): string[] {
  const mutants = rows.flatMap((row) => row.mutants)
  const packageOf = ({ file }: TriedMutant) => file.split('/')[1]
  const packages = [...new Set(mutants.map(packageOf))].toSorted()
  return [...packages, 'all'].map((name = '') => {
    const tried = name === 'all' ? mutants : mutants.filter((mutant) => packageOf(mutant) === name)
    const noticed = tried.filter(({ isNoticed }) => isNoticed).length
    const share = tried.length === 0 ? '-' : `${Math.round((100 * noticed) / tried.length)} %`
    return `${name.padEnd(14)}${`${noticed} of ${tried.length} noticed`.padEnd(24)}${share}`
  })
}
