/** A bank with three tools as an application has them, before anything is governed. */

export interface Wire {
  readonly wire: string
}

interface Tool<Args, Result> {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly type: 'object' }
  readonly run: (args: Args) => Promise<Result>
}

/** Wires that are reversed at present. */
export const reversed: string[] = []

export const ledgerSnapshot: Tool<object, { balance: number }> = {
  name: 'ledger_snapshot',
  description: 'The state of the account.',
  parameters: { type: 'object' },
  run: async () => ({ balance: 250 }),
}

export const reverseWire: Tool<Wire, { ref: string }> = {
  name: 'reverse_wire',
  description: 'Takes a wire transfer back.',
  parameters: { type: 'object' },
  run: async ({ wire }) => {
    reversed.push(wire)
    return { ref: `R-${wire}` }
  },
}

export const reinstateWire: Tool<Wire, { reinstated: string }> = {
  name: 'reinstate_wire',
  description: 'Undoes a reversal.',
  parameters: { type: 'object' },
  run: async ({ wire }) => {
    reversed.splice(reversed.indexOf(wire), 1)
    return { reinstated: wire }
  },
}

/** The requester: an agent of the bank, which people supervise. */
export const identity = {
  agent_id: 'reversal-agent',
  owner_id: 'bank',
  control_class: 'human-supervised',
} as const
