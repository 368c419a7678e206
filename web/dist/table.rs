// Made by web/build.mjs.
[
    WebFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
    WebFile { path: "/assets/parlor.63b3c9d567c9.lzma", content_type: "application/octet-stream", gzip: include_bytes!("parlor.lzma.gz") },
    WebFile { path: "/assets/play.0d5948e69b1f.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("play.js.gz") },
    WebFile { path: "/assets/play.dd6e5ba9ef75.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("play.css.gz") },
]
