import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** May only speak after it has looked, and never looks. */
const refused: AgentDefinition = defineAgent({
  name: 'refused',
  sideA: { prompt: 'refused' },
  taskClass: {
    name: 'looking',
    needs: [{ type: 'tool_result', source: 'look' }],
    verifiers: [],
    repair: { max: 0 },
  },
})

export default refused
