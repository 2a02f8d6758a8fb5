import type { JsonObject } from '@skein/base'
import type { ImageStreamEvent, ImageUsage } from '../image.ts'
import { contextOf } from '../transport/attempt.ts'
import {
  chooseReader,
  type FrameDecoder,
  FrameReader,
  JsonReader,
} from '../transport/read-answer.ts'
import { type OpenReader, VendorRun } from '../transport/vendor-run.ts'
import {
  type DecodedImages,
  decodeWhole,
  type ImageCall,
  imageVendorCall,
  toGenerated,
  type VendorImage,
} from './http-image.ts'

/** An event of an image stream, before the bytes of its image are at hand. */
export type ImageFrame =
  | { readonly type: 'preview'; readonly index: number; readonly image: VendorImage }
  | { readonly type: 'image'; readonly index: number; readonly image: VendorImage }
  | { readonly type: 'end'; readonly usage?: ImageUsage; readonly metadata?: JsonObject }

/** Images while they are made. A server that does not stream gives the finished ones. */
export async function* streamImages(
  call: ImageCall,
  createDecoder: () => FrameDecoder<ImageFrame>,
  decode: (body: JsonObject) => DecodedImages,
): AsyncGenerator<ImageStreamEvent, void, undefined> {
  const vendorCall = imageVendorCall(call, 'text/event-stream')
  const open: OpenReader<readonly ImageFrame[]> = (answer) =>
    chooseReader(answer, {
      isStreaming: true,
      framing: 'sse',
      whole: () =>
        new JsonReader(answer, vendorCall, (json) =>
          wholeFrames(decodeWhole(json, call.endpoint.name, decode)),
        ),
      frames: () =>
        new FrameReader<ImageFrame>(answer, {
          framing: 'sse',
          decoder: createDecoder(),
          context: contextOf(vendorCall),
          isHeld: () => false,
          isLast: () => false,
        }),
    })
  for await (const frames of new VendorRun(vendorCall, open)) {
    for (const frame of frames) yield await toEvent(frame, call)
  }
}

function wholeFrames({ images, usage, metadata }: DecodedImages): readonly ImageFrame[] {
  return [
    ...images.map((image, index) => ({ type: 'image' as const, index, image })),
    { type: 'end', ...(usage && { usage }), metadata },
  ]
}

async function toEvent(frame: ImageFrame, call: ImageCall): Promise<ImageStreamEvent> {
  if (frame.type === 'end') {
    const { usage, metadata } = frame
    return {
      type: 'end',
      ...(usage && { usage }),
      ...(metadata && { metadata: { [call.endpoint.name]: metadata } }),
    }
  }
  const generated = await toGenerated(frame.image, call)
  return frame.type === 'preview'
    ? { type: 'preview', index: frame.index, image: generated.image }
    : { type: 'image', index: frame.index, image: generated }
}
