/** A process that dies at a given step: from then on nothing in it goes on, and nothing is thrown. */
export class Mortal {
  readonly died: Promise<'died'>
  /** Names of the steps passed. */
  readonly steps: string[] = []
  readonly #at: number
  #die: (value: 'died') => void = () => {}

  constructor(at: number = Number.POSITIVE_INFINITY) {
    this.#at = at
    this.died = new Promise((resolve) => (this.#die = resolve))
  }

  /** A point at which the process may die. */
  async step(name: string): Promise<void> {
    this.steps.push(name)
    if (this.steps.length <= this.#at) return
    this.#die('died')
    await new Promise(() => {})
  }
}
