// Made by web/build.mjs.
[
    WebFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
    WebFile { path: "/assets/parlor.02183e28ea6b.lzma", content_type: "application/octet-stream", gzip: include_bytes!("parlor.lzma.gz") },
    WebFile { path: "/assets/play.2f3e181606be.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("play.js.gz") },
    WebFile { path: "/assets/play.dd6e5ba9ef75.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("play.css.gz") },
]
