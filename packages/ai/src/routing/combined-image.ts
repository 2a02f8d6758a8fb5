import type { BoundImageModel, ImageCapabilities, ImageHandler, ImageRequest } from '../image.ts'
import {
  withReport,
  type Bound,
  type BoundCombination,
  type Combination,
  type MemberAnswer,
} from './member-policy.ts'
import { openStream, readOpened } from './opened-stream.ts'

/** Generates, edits and streams with whichever member the policy chooses. */
export function imageHandler({ name, members, policy, capabilities }: Combination): ImageHandler {
  return {
    bind: ({ modelId }) => {
      const bound = members.map((member) => {
        const { reference } = member
        return { ...member, bound: reference.provider.handlers.image!.bind(reference) }
      })
      return combinedImage({ modelId, provider: name, members: bound, policy }, capabilities)
    },
  }
}

function combinedImage(
  combination: BoundCombination<BoundImageModel>,
  mode: Combination['capabilities'],
): BoundImageModel {
  const { modelId, provider, members, policy } = combination
  const run = async <T>(
    request: ImageRequest,
    { streaming, able }: { streaming: boolean; able: (bound: BoundImageModel) => boolean },
    attempt: (bound: BoundImageModel, request: ImageRequest) => Promise<T>,
  ): Promise<MemberAnswer<Bound<BoundImageModel>, T>> =>
    policy.run({
      request,
      modality: 'image',
      streaming,
      members: members.filter(({ bound }) => able(bound)),
      attempt: (member) => attempt(member.bound, member.toRequest(request)),
    })
  return {
    modelId,
    provider,
    capabilities: imageCapabilities(members, mode),
    async generate(request) {
      const able = ({ capabilities }: BoundImageModel): boolean => capabilities.generate
      const task = { streaming: false, able }
      const answer = await run(request, task, (bound, asked) => bound.generate(asked))
      return withReport(answer.value, answer, provider)
    },
    async edit(request) {
      const able = ({ edit }: BoundImageModel): boolean => edit !== undefined
      const task = { streaming: false, able }
      const answer = await run(request, task, (bound, asked) => bound.edit!(asked))
      return withReport(answer.value, answer, provider)
    },
    async *stream(request) {
      const able = ({ stream }: BoundImageModel): boolean => stream !== undefined
      const answer = await run(request, { streaming: true, able }, (bound, asked) =>
        openStream(inBatches(bound.stream!(asked)), () => true, {
          provider: bound.provider,
          modality: 'image',
        }),
      )
      for await (const events of readOpened(answer.value))
        for (const event of events)
          yield event.type === 'end' ? withReport(event, answer, provider) : event
    },
  }
}

function imageCapabilities(
  members: readonly Bound<BoundImageModel>[],
  mode: Combination['capabilities'],
): ImageCapabilities {
  const most = members.flatMap(({ bound }) => bound.capabilities.maxImages ?? [])
  return Object.freeze({
    generate: members[mode](({ bound }) => bound.capabilities.generate),
    streaming: members[mode](({ bound }) => bound.capabilities.streaming && !!bound.stream),
    edit: members[mode](({ bound }) => bound.capabilities.edit && !!bound.edit),
    ...(most.length > 0 && { maxImages: Math.min(...most) }),
  })
}

async function* inBatches<T>(source: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  for await (const item of source) yield [item]
}
